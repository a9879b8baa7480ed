# Arrow C++ and libtorch come out of Python wheels: `make` puts them into .venv (cmake/setup.sh); a host that has torch or
# pyarrow in its own Python is used as it is. This file is also installed: the package looks for the wheels anew where it is
# used, so that no path of the machine that built it stands in its targets. Targets: zellige_arrow, zellige_torch.

if(SKBUILD)
  # A wheel is for the Python that builds it (pyproject.toml).
  set(ZELLIGE_PYTHON "${Python3_EXECUTABLE}" CACHE FILEPATH "Python whose packages hold torch and pyarrow")
elseif(EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
  set(ZELLIGE_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python3" CACHE FILEPATH "Python whose packages hold torch and pyarrow")
else()
  find_program(ZELLIGE_PYTHON python3 DOC "Python whose packages hold torch and pyarrow")
endif()

# Folder of an installed Python package, without importing it; empty when it is not there.
function(zellige_python_package package result)
  execute_process(
    COMMAND "${ZELLIGE_PYTHON}" -c
      "import importlib.util as u; s = u.find_spec('${package}'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

if(ZELLIGE_ARROW AND NOT TARGET zellige_arrow)
  zellige_python_package(pyarrow arrow_folder)
  file(GLOB arrow_library "${arrow_folder}/libarrow.so.*[0-9]")
  file(GLOB parquet_library "${arrow_folder}/libparquet.so.*[0-9]")
  if(NOT arrow_folder OR NOT arrow_library OR NOT parquet_library)
    message(FATAL_ERROR "pyarrow is not in ${ZELLIGE_PYTHON}: run cmake/setup.sh, or name a Python that has it by "
                        "-DZELLIGE_PYTHON=..., or build Zellige with -DZELLIGE_ARROW=OFF")
  endif()
  list(GET arrow_library 0 arrow_library)
  list(GET parquet_library 0 parquet_library)
  # A file with Arrow's symbols is linked by path; the run path of the program points into the wheel.
  add_library(zellige_arrow INTERFACE IMPORTED GLOBAL)
  target_include_directories(zellige_arrow INTERFACE "${arrow_folder}/include")
  target_link_libraries(zellige_arrow INTERFACE "${arrow_library}" "${parquet_library}")
  target_link_options(zellige_arrow INTERFACE "LINKER:-rpath,${arrow_folder}")
endif()

if(ZELLIGE_TORCH AND NOT TARGET zellige_torch)
  zellige_python_package(torch torch_folder)
  if(NOT torch_folder)
    message(FATAL_ERROR "torch is not in ${ZELLIGE_PYTHON}: run cmake/setup.sh, or name a Python that has it by "
                        "-DZELLIGE_PYTHON=..., or build Zellige with -DZELLIGE_TORCH=OFF, or find_package(zellige COMPONENTS plan)")
  endif()
  # Torch's own package runs a GPU detection that needs an architecture named where there is no GPU.
  if(NOT DEFINED TORCH_CUDA_ARCH_LIST)
    set(TORCH_CUDA_ARCH_LIST "9.0")
  endif()
  list(APPEND CMAKE_PREFIX_PATH "${torch_folder}/share/cmake")
  find_package(Torch REQUIRED)
  # Where the CUDA libraries of the wheels lie, for the run path.
  file(GLOB torch_runtime_folders "${torch_folder}/../nvidia/*/lib")
  list(PREPEND torch_runtime_folders "${torch_folder}/lib")

  add_library(zellige_torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(zellige_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(zellige_torch INTERFACE ${TORCH_INCLUDE_DIRS})
  foreach(folder IN LISTS torch_runtime_folders)
    target_link_options(zellige_torch INTERFACE "LINKER:-rpath,${folder}")
  endforeach()
endif()
