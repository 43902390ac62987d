type Keys = readonly (readonly [key: string, does: string])[]

export const fleetHelp: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the pane in use'],
  ['Tab', 'the other pane'],
  ['Enter', 'open the chosen task; of a host, its newest one'],
  ['f', 'hosts with this text, or tasks on the right'],
  ['e E', 'next, previous host that is not well'],
  ['x', 'run on the chosen host, or on all shown'],
  ['d', 'what is wrong with the fleet, and what to do'],
  ['t', 'a terminal on the chosen host'],
  ['Esc', 'all hosts, all tasks again'],
  ['Ctrl-L Ctrl-Z', 'draw anew; suspend'],
  ['q Ctrl-C', 'leave'],
]
/** The most useful ones first: the others are where there is room. */
export const fleetKeys: Keys = [
  ['q', 'quit'],
  ['?', 'help'],
  ['Enter', 'open task'],
  ['x', 'run'],
  ['d', 'doctor'],
  ['t', 'terminal'],
  ['Tab', 'hosts/tasks'],
  ['f', 'filter'],
  ['e', 'next not ONLINE'],
]
