"""How rules are carried out: plain, or compiled for many environments (lanes) at once.

The way of a rule, file by file. Only those marked * need numba; the others are plain Python and numpy.

In plain Python
    binding             a rule as a function of the truth: what it reads, how what it returns is checked and stored;
                        the tables below ask it where what a rule reads of a parent or of children lies.
    python_rules        all rules, masks and methods of one hierarchy, bound to one truth.
    python_law*         the phases of a step made of them, over the arrays of lanes.

From rules to text
    source, loops       text of one function for each kind of agent and rule, and of the loops over all agents.
    world_rules         the same for `begin`, `advance` and `finish` of an environment.
    digest, cache       a hash of all that the text depends on; files named by it, and the folder they are kept in.

From text to machine code
    checking*           each rule compiled alone, once, with its helpers; numba's refusals with the user's line; what
                        no world rule may do, compiled or not.
    machine_code*       numba's cache on disk, which survives spoilt files.
    kernels*            how functions are compiled; arrays by name; calling a loop by its address.
    draw_kernel*        keyed draws, as heron_env.seeding has them.
    world_kernel*       what world rules stand on: columns, draws, clipping.
    loop_kernels*       what happens in every lane whatever the rules, and the control step as a whole, with
                        decision_kernels* (who acts, with what), ending_kernels* (who ends), noise_kernel*.
    compiled            all of this put together: a module of loops for a blueprint.
    collecting          garbage collection waits for it.

From a hierarchy to memory
    blueprint           all that must be known of a simulation.
    tables              where each agent's columns, children, action and infos lie, with decision_tables (who commands
                        whom, what is legal) and observation_tables (what is seen, and with which noise).
    arrays, memory      names and types of all arrays; the arrays themselves, and the table of their addresses.

Running
    law                 the phases of a control step for one blueprint.
    lanes               what may be done to B environments; threads where they are faster now, errors. The way
                        in for everybody else.
    lane_errors         a code in the array of errors as an error that names lane, agent, rule and quantity.
"""
