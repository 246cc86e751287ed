"""What the scripted users want, one module per subject: `database`, `folder`, `web`, `office`, `desk`, `library`.

Each scenario is a generator of steps (see `agents`). `traffic` says how often each one comes up.
"""
