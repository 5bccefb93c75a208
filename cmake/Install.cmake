# `cmake --install`: headers, libraries, programs and their manifests, and a CMake package for find_package(Leeway).
# Included last, when all targets are known.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY LEEWAY_LIBRARIES)

# Leeway::leeway of the package: the runtime and everything that it uses.
add_library(leeway INTERFACE)
target_link_libraries(leeway INTERFACE leeway_runtime)

install(TARGETS ${libraries} leeway EXPORT LeewayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Headers keep their folders under include/leeway. Only messages/*.cpp and plan/*.cpp may include *wire.hpp and
# schema_text.hpp, kernels/*.cpp onednn.hpp, and cluster/*.cpp x509.hpp.
foreach(folder core tensor kernels messages plan models policies actors monitoring cluster sim runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway
    FILES_MATCHING PATTERN "*.hpp"
    PATTERN generator EXCLUDE
    PATTERN *wire.hpp EXCLUDE
    PATTERN schema_text.hpp EXCLUDE
    PATTERN onednn.hpp EXCLUDE
    PATTERN x509.hpp EXCLUDE)
endforeach()
# Plain structs of the schemas.
install(DIRECTORY ${LEEWAY_GENERATED}/messages DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway
  FILES_MATCHING PATTERN "*.hpp" PATTERN generator EXCLUDE PATTERN *wire.hpp EXCLUDE)

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
  ${PROJECT_SOURCE_DIR}/cmake/Finddnnl.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Scenario.cmake
  DESTINATION ${package_dir})
