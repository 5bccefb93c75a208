# Runs the generator on example.capnp and compares its output with expected/. To accept a change, copy
# the files that the failure names. Then runs it on schemas that it must refuse.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(compile ${CAPNP} compile --src-prefix=${ROOT} -I${ROOT} -I${CAPNP_INCLUDES} -o${GENERATOR}:${WORK})
set(here ${ROOT}/tests/messages/generator)

execute_process(COMMAND ${compile} ${here}/example.capnp RESULT_VARIABLE code ERROR_VARIABLE errors)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "the generator failed on example.capnp:\n${errors}")
endif()
foreach(file example.hpp example.wire.hpp example.cpp any_example.hpp fields_example.hpp)
  set(written ${WORK}/tests/messages/generator/${file})
  if(file MATCHES "_example")
    set(written ${WORK}/tests/tests/messages/generator/${file})
  endif()
  execute_process(COMMAND diff -u ${here}/expected/${file}.txt ${written}
    RESULT_VARIABLE code OUTPUT_VARIABLE difference)
  if(NOT code EQUAL 0)
    message(SEND_ERROR "${written} differs from expected/${file}.txt:\n${difference}")
  endif()
endforeach()

# must_refuse(TEXT FIELD): a struct with this field makes the generator fail with this text.
function(must_refuse text field)
  file(WRITE ${WORK}/refused.capnp "@0xd1c8a1f0c0a0b0e1;\nusing Cpp = import \"/messages/generator/annotations.capnp\";\n"
    "$Cpp.namespace(\"leeway\");\nstruct Refused { ${field} }\n")
  execute_process(COMMAND ${compile} --src-prefix=${WORK} ${WORK}/refused.capnp
    RESULT_VARIABLE code ERROR_VARIABLE errors)
  string(FIND "${errors}" "${text}" place)
  if(code EQUAL 0 OR place EQUAL -1)
    message(SEND_ERROR "${field}: expected the error \"${text}\", but the generator ended with ${code}:\n${errors}")
  endif()
endfunction()
must_refuse("data needs a $type" "bytes @0 :Data;")
must_refuse("interfaces, pointers and lists of lists are not supported" "lists @0 :List(List(Text));")
must_refuse("a union needs a $type" "which :union { a @0 :Void; b @1 :Void; }")
must_refuse("an arm of a union cannot be a list" "union { a @0 :Void; b @1 :List(Text); }")
