"""How rules are carried out: plain, or compiled for many environments (lanes) at once.

The way of a rule, file by file; those marked * need numba.

In plain Python: `binding`, a rule as a function of the truth, with the checks of what it returns; `python_rules`, all
rules and methods of one hierarchy, bound to one truth; `python_law`*, the phases of a step made of them, over lanes.

From rules to machine code: `source`, `loops` and `world_rules` write the text of the phases; `cache` names the file it
is kept in by a hash of all it depends on; `checking`* compiles each rule alone, so that numba's refusals have the
user's line; `phases` puts it together. What the text calls: `kernels`* (how functions are compiled and kept, arrays by
name), `linking`* (what only compiled code calls becomes part of its callers), `decision_kernels`* (who acts, with
what; masks), `loop_kernels`* (what happens in every lane whatever the rules, who ends, and the step as a whole),
`draw_kernel`* (keyed draws, noise), `world_kernel`* (columns for world rules). `vector`*: what the text says of one
lane, compiled for eight lanes at once: `branches` turns `if` into masks, `compiling` takes the text, `tiles` brings
lanes there and back, `columns` finds out which of their columns must move; `types`, `masks`, `numbers`, `elements` and
`words` say what it means for vectors.

From a hierarchy to memory: `model`, all that must be known of a simulation; `tables`, where everything lies, who
commands whom, what is legal, what is seen; `arrays` and `memory`, names and types of all arrays, and the arrays.

Running: `phases`, those of a control step; `lanes`, what may be done to B environments, the way in for everybody else;
`lane_errors`, a code in the array of errors as an error that names lane, agent, rule and quantity. `event`: the event
clock in compiled code.
"""
