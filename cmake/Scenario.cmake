# leeway_add_scenario(NAME SOURCES file...): builds and installs a scenario program in bin/ and its manifest
# share/leeway/scenarios/NAME.json, by which the `leeway` command finds it. find_package(Leeway) provides this function.
#
# Run as a script (cmake -DPROGRAM=... -DMANIFEST=... -P), this file writes the manifest of a built program.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND ${PROGRAM} --describe-json
    OUTPUT_VARIABLE manifest ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} --describe-json failed (${result}):\n${manifest}${errors}")
  endif()
  file(WRITE ${MANIFEST} "${manifest}")
  return()
endif()

include(GNUInstallDirs)
set(LEEWAY_SCENARIO_SCRIPT ${CMAKE_CURRENT_LIST_FILE} CACHE INTERNAL "")

function(leeway_add_scenario name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "leeway_add_scenario(${ARGV}): write leeway_add_scenario(NAME SOURCES file.cpp)")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE Leeway::leeway)
  if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  endif()
  get_target_property(bin ${name} RUNTIME_OUTPUT_DIRECTORY)
  cmake_path(SET manifest NORMALIZE ${bin}/../share/leeway/scenarios/${name}.json)
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DMANIFEST=${manifest}
      -P ${LEEWAY_SCENARIO_SCRIPT})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${manifest} DESTINATION ${CMAKE_INSTALL_DATADIR}/leeway/scenarios)
endfunction()
