import type { Focus, Keys } from './drawing.ts'

export const taskHelp: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the active pane'],
  ['Tab Enter', 'switch panes'],
  ['f', 'filter hosts by name or state'],
  ['/ n N', 'search the log; next, previous match'],
  ['e E', 'next, previous failed host; in the log, stderr'],
  ['s', 'show both streams, stdout, stderr'],
  ['b', 'fold equal output; b shows the log again'],
  ['w', 'toggle wrapping; if off, Left and Right move'],
  ['F End', 'follow the log again'],
  ['y', 'plain text, to select and copy'],
  ['t', 'a terminal on the chosen host'],
  ['c', 'cancel the task'],
  ['r', 'retry on hosts that did not succeed'],
  ['Esc', 'clear search, filter; back to the fleet'],
  ['Ctrl-L Ctrl-Z', 'redraw; suspend'],
  ['q Ctrl-C', 'quit: a running task keeps running'],
]

/** Most useful first: the rest is shown if there is room. */
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
  ['Up Down j k PgUp PgDn g G', 'move in the active pane'],
  ['Tab', 'switch panes'],
  ['Enter', 'open the chosen task, or the newest of a host'],
  ['f', 'filter hosts, or tasks on the right'],
  ['e E', 'next, previous host that is not ONLINE'],
  ['x', 'run on the chosen host, or on all shown'],
  ['d', 'diagnose the chosen host, or the fleet'],
  ['t', 'a terminal on the chosen host'],
  ['Esc', 'show all hosts, all tasks'],
  ['Ctrl-L Ctrl-Z', 'redraw; suspend'],
  ['q Ctrl-C', 'quit'],
]
/** Most useful first: the rest is shown if there is room. */
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
