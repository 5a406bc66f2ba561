"""How a step is carried out: one model, one state, one step, for one environment or many (lanes), rules compiled or
not.

`model`: all that is declared. `arrays`, `memory`, `tables`: the state, arrays by name with a row for each lane, and
what never changes. `phases`: the phases of a model, each a loop over lanes. `step`*: the order in which they run, and
what follows them, told once: read this first. `lanes`: what may be done to B environments, the way in for everybody
else. Files marked * need numba.

A place of `step` is a phase and what follows it: compiled code of an environment's own, then Python. `called` and
`call_kernel`*: a Python function with an address, what it raised, and signals. `python_law`: the phases of rules in
plain Python, which follow places, too; `python_rules`, all rules and methods of one hierarchy bound to one truth;
`binding`, one rule as a function of the truth, with the checks of what it returns.

From rules to machine code: `source`, `loops` and `world_rules` write the text of the phases; `cache` names the file it
is kept in by a hash of all it depends on; `checking`* compiles each rule alone, so that numba's refusals have the
user's line; `phases` puts it together. What the text calls: `kernels`* (how functions are compiled and kept, arrays by
name), `linking`* (what only compiled code calls becomes part of its callers), `decision_kernels`* (who acts, with
what; masks), `loop_kernels`* (what phases do whatever the rules: who ends, what is published), `draw_kernel`* (keyed
draws, noise), `world_kernel`* (columns for world rules). `vector`*: what the text says of one lane, compiled for eight
lanes at once: `branches` turns `if` into masks, `compiling` takes the text, `tiles` brings lanes there and back,
`columns` finds out which of their columns must move; `types`, `masks`, `numbers`, `elements` and `words` say what it
means for vectors.

`lane_errors`: a code in the array of errors as an error that names lane, agent, rule and quantity. `event`: the event
clock in compiled code, which takes its substeps and boundaries from `step`.
"""
