# How everything is compiled, and zellige_room(), which makes one target a room.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets ccache serve files that are compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${CCACHE_PROGRAM}")
endif()

find_package(Threads REQUIRED)

# Warnings and sanitizers; never part of the installed interface.
add_library(zellige_flags INTERFACE)
target_compile_options(zellige_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
# g++ from 12 on takes `"text" + std::string` for an overlapping copy where there is none (its bug 105651).
target_compile_options(zellige_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(ZELLIGE_WERROR)
  target_compile_options(zellige_flags INTERFACE -Werror)
endif()
if(ZELLIGE_SANITIZE)
  target_compile_options(zellige_flags INTERFACE -fsanitize=${ZELLIGE_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(zellige_flags INTERFACE -fsanitize=${ZELLIGE_SANITIZE})
endif()

# zellige_room(NAME SOURCES ... [ROOMS lower rooms ...] [PUBLIC libraries ...] [PRIVATE libraries ...] [TORCH])
# TORCH: the room's sources include libtorch, through the one precompiled header.
function(zellige_room name)
  cmake_parse_arguments(ROOM "TORCH" "" "SOURCES;ROOMS;PUBLIC;PRIVATE" ${ARGN})
  set(target zellige_room_${name})
  add_library(${target} STATIC ${ROOM_SOURCES})
  add_library(zellige::room_${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME room_${name})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(${target} PUBLIC cxx_std_20)
  foreach(room IN LISTS ROOM_ROOMS)
    target_link_libraries(${target} PUBLIC zellige_room_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ROOM_PUBLIC}
    PRIVATE ${ROOM_PRIVATE} $<BUILD_INTERFACE:zellige_flags> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
  if(ROOM_TORCH)
    zellige_use_torch(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY ZELLIGE_ROOM_TARGETS ${target})
endfunction()

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
