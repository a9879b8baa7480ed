# `cmake --install`: two libraries for other projects, zellige::plan (base..plan, report: no torch) and zellige::zellige (all).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(zellige_library_plan INTERFACE)
set_target_properties(zellige_library_plan PROPERTIES EXPORT_NAME plan)
target_link_libraries(zellige_library_plan INTERFACE zellige_room_plan zellige_room_report)
add_library(zellige::plan ALIAS zellige_library_plan)

add_library(zellige_library_all INTERFACE)
set_target_properties(zellige_library_all PROPERTIES EXPORT_NAME zellige)
target_link_libraries(zellige_library_all INTERFACE zellige_library_plan)
if(ZELLIGE_TORCH)
  target_link_libraries(zellige_library_all INTERFACE zellige_room_train zellige_room_calibrate)
endif()
add_library(zellige::zellige ALIAS zellige_library_all)

get_property(room_targets GLOBAL PROPERTY ZELLIGE_ROOM_TARGETS)
install(TARGETS ${room_targets} zellige_library_plan zellige_library_all EXPORT zellige_targets)
install(DIRECTORY include/zellige DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT zellige_targets NAMESPACE zellige:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zellige)
configure_package_config_file(cmake/zellige-config.cmake.in zellige-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zellige)
write_basic_package_version_file(zellige-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/zellige-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/zellige-config-version.cmake"
  cmake/zellige_wheels.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zellige)
