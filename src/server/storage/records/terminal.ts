import type { TerminalStatus } from '../../../core/terminals/terminal.ts'

/** A terminal session (contract §7). */
export interface TerminalRecord {
  id: string
  hostId: number
  hostname: string
  agentId: string
  user: string
  userId: number
  /** Token that opened it: the session ends with it. */
  tokenId: number
  status: TerminalStatus
  cols: number
  rows: number
  runAs: string | null
  shell: string | null
  term: string | null
  trueColor?: true
  command: string | null
  /** Whether the command has no stdin. */
  noStdin: boolean
  startedAt: string
  endedAt: string | null
  exitCode: number | null
  signal: string | null
  reason: string | null
  recorded: boolean
  /** Set once the session has ended. */
  recordingBytes: number
}
