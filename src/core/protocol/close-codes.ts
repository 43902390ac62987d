/** Why a WebSocket of ours was closed (contract §6, RFC 6455 §7.4). */
export const closeCodes = {
  shuttingDown: 1001,
  tooLarge: 1009,
  overloaded: 1013,
  protocolFault: 4400,
  revoked: 4401,
  idle: 4408,
  replaced: 4409,
} as const

/** What an agent says with 1001 when it is stopped in order, and not when it only ends a link that has nothing to do. */
export const stoppedReason = 'the agent was stopped'
