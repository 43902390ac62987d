import type { Focus, Keys } from './layout.ts'

export const taskHelp: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the pane in use'],
  ['Tab Enter', 'the other pane'],
  ['f', 'hosts with this text in name or state'],
  ['/ n N', 'look for text in the log; next, previous'],
  ['e E', 'next, previous failed host; in the log, stderr'],
  ['s', 'both streams, stdout, stderr'],
  ['b', 'equal output of hosts once; b shows the log again'],
  ['w', 'wrap long lines, or not: Left and Right move'],
  ['F End', 'follow the log again'],
  ['y', 'plain text, for the terminal to copy from'],
  ['t', 'a terminal on the chosen host'],
  ['c', 'cancel the task'],
  ['r', 'run it again where it did not succeed'],
  ['Esc', 'stop the search, the filter; back to the fleet'],
  ['Ctrl-L Ctrl-Z', 'redraw; suspend'],
  ['q Ctrl-C', 'leave: a running task keeps running'],
]

/** The most useful ones first: the others are where there is room. */
export function taskKeys(focus: Focus, isRunning: boolean): Keys {
  return [
    ['q', 'quit'],
    ['?', 'help'],
    ['/', 'search'],
    ['e', focus === 'left' ? 'next failed' : 'next stderr'],
    isRunning ? ['c', 'cancel'] : ['r', 'retry'],
    ['t', 'terminal'],
    ['Tab', focus === 'left' ? 'log' : 'hosts'],
    ['b', 'fold'],
    ['s', 'stream'],
    ['w', 'wrap'],
    ['F', 'follow'],
    ['y', 'copy'],
    ['f', 'filter'],
    ['Esc', 'fleet'],
  ]
}

export const fleetHelp: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the pane in use'],
  ['Tab', 'the other pane'],
  ['Enter', 'open the chosen task; of a host, its newest one'],
  ['f', 'hosts with this text, or tasks on the right'],
  ['e E', 'next, previous host that is not well'],
  ['x', 'run on the chosen host, or on all shown'],
  ['d', 'diagnose the chosen host, or the fleet'],
  ['t', 'a terminal on the chosen host'],
  ['Esc', 'all hosts, all tasks again'],
  ['Ctrl-L Ctrl-Z', 'redraw; suspend'],
  ['q Ctrl-C', 'leave'],
]
/** The most useful ones first: the others are where there is room. */
export const fleetKeys: Keys = [
  ['q', 'quit'],
  ['?', 'help'],
  ['Enter', 'open'],
  ['x', 'run'],
  ['d', 'doctor'],
  ['t', 'terminal'],
  ['f', 'filter'],
  ['Tab', 'switch'],
  ['e', 'next not ONLINE'],
]
