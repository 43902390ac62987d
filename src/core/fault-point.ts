/**
 * Durable steps in the life of an execution, in the order of docs/inside/execution.md. That document describes what a
 * crash right before or after each step leaves behind.
 */
export type FaultPoint =
  | `server.${'created' | 'turn' | 'sent' | 'returned' | 'named' | 'output' | 'settled'}.${Moment}`
  | `server.${'lost' | 'unreachable' | 'skipped' | 'paused' | 'cancelled' | 'late'}.${Moment}`
  | `server.${'archived' | 'final'}.${Moment}`
  | 'server.frame.after'
  | 'server.output.written'
  | `agent.${'request' | 'received' | 'prepared' | 'started' | 'spawned' | 'chunk' | 'ending'}.${Moment}`
  | `agent.${'ended' | 'acknowledged' | 'removed' | 'cancelled' | 'compacted'}.${Moment}`
  | `agent.${'gated' | 'passed'}.${Moment}`
  | 'agent.launch.before'
  | 'agent.marker.after'
  | `upgrade.${'kept' | 'former' | 'exchanged' | 'executableBack' | 'storeBack'}.after`

type Moment = 'before' | 'after'

/**
 * Marks such a step. Does nothing: in a process started with `--conditions=rsm-faults`, the tests' version replaces
 * it and ends the process there (package.json, `imports`).
 */
export function faultPoint(_name: FaultPoint): void {
  // Empty: the product neither reads the environment nor counts.
}
