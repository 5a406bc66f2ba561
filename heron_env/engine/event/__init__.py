"""The event clock in compiled code; heron_env.envs.event and heron_env.scheduling are the same law in Python.

`clock`, the heap and the loop over lanes; `agents`, what they ask, decide and do; `physics`, steps, rewards and ends;
`broker`, messages and reports on their way; `links`, how long they take and which are lost; `forms`, names of columns
and codes; `memory`, all arrays of it.
"""
