cmake_minimum_required(VERSION 3.25)

# Installs the build into a new prefix, builds a user's project against it, and runs the result.
function(run expected)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${WORK} TIMEOUT 240
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL expected)
    list(JOIN arg_COMMAND " " command)
    message(FATAL_ERROR "${command}\nended with ${code}, not ${expected}:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(expect_in_output text)
  string(FIND "${out}" "${text}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "the output does not contain \"${text}\":\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(prefix ${WORK}/prefix)
set(mine ${WORK}/mine)
run(0 COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# Private headers are not installed.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include/leeway ${prefix}/include/leeway/*)
foreach(header leeway.hpp kv.h testing.hpp runtime/scenario.hpp sim/story.hpp)
  if(NOT header IN_LIST headers)
    message(FATAL_ERROR "${header} is not installed")
  endif()
endforeach()
set(private ${headers})
list(FILTER private INCLUDE REGEX "^(cluster|messages/generator|monitoring|runtime/[a-z]+)/|wire.hpp|onednn.hpp")
if(private)
  message(FATAL_ERROR "private headers are installed: ${private}")
endif()

# The project finds the package only by the prefix, and compiles with the sanitizers of the build.
set(flags "")
if(SANITIZE)
  set(flags -fsanitize=${SANITIZE})
endif()
function(build project folder)
  run(0 COMMAND ${CMAKE_COMMAND} -S ${project} -B ${folder} -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
    -DCMAKE_BUILD_TYPE=${CONFIGURATION} -DCMAKE_CXX_FLAGS=${flags} -DCMAKE_C_FLAGS=${flags} -DCMAKE_EXE_LINKER_FLAGS=${flags})
  run(0 COMMAND ${CMAKE_COMMAND} --build ${folder})
endfunction()
build(${PROJECT} ${mine})
run(0 COMMAND ${mine}/bin/mine)
run(0 COMMAND ${mine}/bin/story_test)
run(0 COMMAND ${mine}/bin/mine_in_c)

# The example of docs/testing.md, in Catch2 and in GoogleTest.
build(${EXAMPLE} ${WORK}/example)
run(0 COMMAND ${WORK}/example/catch_test)
run(0 COMMAND ${WORK}/example/google_test)

# The installed command finds the installed scenarios next to itself, and the project's through PATH.
set(ENV{PATH} "${mine}/bin:$ENV{PATH}")
set(leeway ${prefix}/bin/leeway)
run(0 COMMAND ${leeway} list)
expect_in_output("fashion-mlp")
expect_in_output("Finds a line through noisy samples.")
run(0 COMMAND ${leeway} describe mine)
expect_in_output("consistency.ssp.staleness = 2")
run(0 COMMAND ${leeway} run mine --workers 3)
run(2 COMMAND ${leeway} run mnie)
expect_in_output("did you mean \"mine\"?")

# It also finds the scenarios that the project installs.
run(0 COMMAND ${CMAKE_COMMAND} --install ${mine} --prefix ${prefix})
set(ENV{PATH} "/usr/bin:/bin")
run(0 COMMAND ${leeway} run mine --quiet)
