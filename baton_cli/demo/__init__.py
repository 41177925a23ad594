"""`baton demo`: a real change in a throwaway project, driven by the controller, judged from outside by git and files.

`scenario` is the project and who plays which part, `agent` the program that each agent is, `stage` the temporary
folder, `children` the processes, `session` the run, `witness` what is looked at meanwhile, `checks` the verdict.
"""
