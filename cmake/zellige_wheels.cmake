# Arrow C++ and libtorch come out of Python wheels: `make` puts them into .venv (cmake/setup.sh); a host that has torch or
# pyarrow in its own Python is used as it is.

if(EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
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

if(ZELLIGE_ARROW)
  zellige_python_package(pyarrow arrow_folder)
  file(GLOB arrow_library "${arrow_folder}/libarrow.so.*[0-9]")
  file(GLOB parquet_library "${arrow_folder}/libparquet.so.*[0-9]")
  if(NOT arrow_folder OR NOT arrow_library OR NOT parquet_library)
    message(FATAL_ERROR "pyarrow is not in ${ZELLIGE_PYTHON}: run cmake/setup.sh, or configure with -DZELLIGE_ARROW=OFF")
  endif()
  list(GET arrow_library 0 arrow_library)
  list(GET parquet_library 0 parquet_library)
  # A file with Arrow's symbols is linked by path; the run path of the program points into the wheel.
  add_library(zellige_arrow INTERFACE)
  target_include_directories(zellige_arrow SYSTEM INTERFACE $<BUILD_INTERFACE:${arrow_folder}/include>)
  target_link_libraries(zellige_arrow INTERFACE "${arrow_library}" "${parquet_library}")
  target_link_options(zellige_arrow INTERFACE "LINKER:-rpath,${arrow_folder}")
endif()

if(ZELLIGE_TORCH)
  zellige_python_package(torch torch_folder)
  if(NOT torch_folder)
    message(FATAL_ERROR "torch is not in ${ZELLIGE_PYTHON}: run cmake/setup.sh, or configure with -DZELLIGE_TORCH=OFF")
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

  add_library(zellige_torch INTERFACE)
  target_link_libraries(zellige_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(zellige_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${TORCH_INCLUDE_DIRS}>")
  foreach(folder IN LISTS torch_runtime_folders)
    target_link_options(zellige_torch INTERFACE "LINKER:-rpath,${folder}")
  endforeach()
endif()

# Links `target` to libtorch and compiles it with the one precompiled header (a file that includes torch takes about 35 s
# without it).
function(zellige_use_torch target)
  target_link_libraries(${target} PUBLIC zellige_torch)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    # CMake compiles programs with -fPIE, for which the header, compiled with -fPIC as for the rooms, is another header.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  if(NOT TARGET zellige_torch_header)
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/zellige_torch_header.cpp" CONTENT "")
    add_library(zellige_torch_header OBJECT "${PROJECT_BINARY_DIR}/zellige_torch_header.cpp")
    target_link_libraries(zellige_torch_header PRIVATE zellige_torch zellige_flags Threads::Threads)
    target_compile_options(zellige_torch_header PRIVATE -fpch-preprocess)
    target_precompile_headers(zellige_torch_header PRIVATE "${PROJECT_SOURCE_DIR}/src/engine/torch.h")
  endif()
  target_precompile_headers(${target} REUSE_FROM zellige_torch_header)
endfunction()
