# `cmake --install`: headers, libraries, programs and their manifests, and a CMake package for find_package(Leeway).
# Included last, when all targets are known.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY LEEWAY_LIBRARIES)

# Leeway::leeway of the package: the runtime and everything that it uses.
add_library(leeway INTERFACE)
target_link_libraries(leeway INTERFACE leeway_kv leeway_runtime)

install(TARGETS ${libraries} leeway leeway_kv_c EXPORT LeewayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Public headers: what scenario programs include, and what tests of a program need to tell stories to the simulator and to
# check runs. The headers that these include are installed with them.
set(public_headers leeway.hpp kv.hpp kv.h testing.hpp
  models/datasets/load.hpp models/datasets/preprocessing.hpp models/datasets/vocabulary.hpp models/safetensors.hpp
  sim/checkers/checker.hpp sim/story.hpp)
install(CODE "
  set(roots ${PROJECT_SOURCE_DIR} ${LEEWAY_GENERATED})
  set(headers ${public_headers})
  set(destination \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/leeway)")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Leeway)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/LeewayConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LeewayConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LeewayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT LeewayTargets NAMESPACE Leeway:: DESTINATION ${package_dir})
install(FILES
  ${PROJECT_BINARY_DIR}/LeewayConfig.cmake
  ${PROJECT_BINARY_DIR}/LeewayConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Findcpp-httplib.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Finddnnl.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Scenario.cmake
  DESTINATION ${package_dir})
