"""`baton demo`: a real change in a throwaway project, driven by `baton drive`, judged from outside by git and files.

`scenario` is the project and who plays which part, `agent` the program that each agent is, `stage` the temporary
folder, `drives` the processes, `switchboard` what they and their agents say, `director` the run, `witness` what is
looked at meanwhile, `checks` the verdict.
"""
