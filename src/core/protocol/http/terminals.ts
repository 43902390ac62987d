import { longestCommandShown, terminalStatuses } from '../../terminals/terminal.ts'
import { largestScreen } from '../bounds.ts'
import { Closed, Id, Line, Nullable, OpaqueId, paging, type Static, Time, Type } from './common.ts'

const Size = Type.Integer({ minimum: 1, maximum: largestScreen })

/** `shell`: a path, or a name found in PATH there; runs `command` instead of an interactive session. */
export const TerminalCreate = Closed(
  {
    hostId: Id,
    cols: Size,
    rows: Size,
    runAs: Type.Optional(Line(256)),
    shell: Type.Optional(Line(1024)),
    term: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$' })),
    trueColor: Type.Optional(
      Type.Boolean({ description: 'Set COLORTERM to `truecolor`: the client shows 24-bit colours' }),
    ),
    command: Type.Optional(Type.String({ maxLength: 256 * 1024 })),
    noStdin: Type.Optional(Type.Boolean({ description: 'Set the stdin of the command to /dev/null' })),
  },
  { examples: [{ hostId: 7, cols: 120, rows: 40 }] },
)
export type TerminalCreate = Static<typeof TerminalCreate>

/** `path` is relative to the server's base URL; `ticket` admits a browser there once, within 30 s (contract §7). */
export const TerminalTicket = Type.Object({ ticket: Type.String(), path: Type.String(), expiresAt: Time })
export type TerminalTicket = Static<typeof TerminalTicket>

/** A ticket for an existing session; with `watch`, read-only. */
export const TerminalTicketCreate = Closed(
  { watch: Type.Optional(Type.Boolean({ default: false })) },
  { examples: [{ watch: false }] },
)
export type TerminalTicketCreate = Static<typeof TerminalTicketCreate>

export const TerminalCreated = Type.Object({ sessionId: OpaqueId, ...TerminalTicket.properties })
export type TerminalCreated = Static<typeof TerminalCreated>

export const TerminalEnded = Type.Object({ sessionId: OpaqueId })
export type TerminalEnded = Static<typeof TerminalEnded>

export const TerminalStatus = Type.Enum([...terminalStatuses])

/** A terminal session (contract §3); `reason`: why it ended if the shell did not exit on its own. */
export const Terminal = Type.Object({
  sessionId: OpaqueId,
  hostId: Id,
  hostname: Type.String(),
  user: Type.String(),
  status: TerminalStatus,
  cols: Type.Integer(),
  rows: Type.Integer(),
  runAs: Nullable(Type.String()),
  shell: Nullable(Type.String()),
  command: Nullable(
    Type.String({
      maxLength: longestCommandShown + 1,
      description: `Its first ${longestCommandShown} characters; \`…\` replaces the rest`,
    }),
  ),
  startedAt: Time,
  endedAt: Nullable(Time),
  exitCode: Nullable(Type.Integer()),
  signal: Nullable(Type.String()),
  reason: Nullable(Type.String()),
  recorded: Type.Boolean(),
  /** Bytes of the recording; 0 if there is none, or if it was deleted. */
  recordingBytes: Type.Integer(),
  watchers: Type.Array(Type.String()),
})
export type Terminal = Static<typeof Terminal>

export const TerminalQuery = Closed({
  ...paging,
  status: Type.Optional(TerminalStatus),
  hostId: Type.Optional(Id),
  user: Type.Optional(Line(128)),
  recorded: Type.Optional(
    Type.Boolean({ description: 'Only sessions with a recording (true) or without one (false)' }),
  ),
})
export type TerminalQuery = Static<typeof TerminalQuery>
