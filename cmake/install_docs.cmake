# What users read, at install: the pages, the form of graphs as JSON, which lives beside what reads it, the plugins to
# copy, and hosts in C. Links between them are what they are where all lie in one folder. Takes KILN_SOURCE and KILN_TO.
file(GLOB pages ${KILN_SOURCE}/docs/*.md)
foreach(page IN LISTS pages ITEMS ${KILN_SOURCE}/runtime/graph/FORMAT.md)
  file(READ ${page} text)
  string(REPLACE "../runtime/graph/FORMAT.md" "graph-json.md" text "${text}")
  string(REPLACE "../../docs/" "" text "${text}")
  string(REPLACE "../bindings/c/" "" text "${text}")
  get_filename_component(name ${page} NAME)
  string(REPLACE "FORMAT.md" "graph-json.md" name ${name})
  file(WRITE ${KILN_TO}/${name} "${text}")
endforeach()
foreach(plugin template op_template backend_template)
  file(INSTALL ${KILN_SOURCE}/plugins/${plugin} DESTINATION ${KILN_TO}/plugins)
endforeach()
file(INSTALL ${KILN_SOURCE}/bindings/c/examples/readme.c ${KILN_SOURCE}/bindings/c/examples/chars.c
     DESTINATION ${KILN_TO}/examples)
