"""The agent that follows a branch: a commit becomes the fleet. What it does next is decided in `core/gitops`.

`git` and `mirror` ask the git program, `workplace` is its folder, `looking` holds a commit against the nodes, `agent`
is the loop, `carrying` one apply with an eye on the branch; `forge`, `endpoint`, `systemd` and `log` tell the world.
"""
