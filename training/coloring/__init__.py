"""The study of graph colouring: solvers, negotiation over slow links, what PPO learns; a module a subject."""
