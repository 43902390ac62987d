/** Close codes of our WebSockets (contract §6, RFC 6455 §7.4). */
export const closeCodes = {
  shuttingDown: 1001,
  tooLarge: 1009,
  overloaded: 1013,
  protocolFault: 4400,
  revoked: 4401,
  idle: 4408,
  replaced: 4409,
} as const

const closings: Readonly<Record<number, string>> = {
  1000: 'the server has ended it',
  [closeCodes.shuttingDown]: 'the server was shutting down',
  1006: 'the connection was cut',
  [closeCodes.tooLarge]: 'a message was too large',
  [closeCodes.overloaded]: 'the server was overloaded',
  [closeCodes.protocolFault]: 'the server did not understand this agent',
  [closeCodes.revoked]: 'its token was revoked, or the host removed',
  [closeCodes.idle]: 'the server had not heard it for too long',
  [closeCodes.replaced]: 'another agent has linked that has the same identity',
}

/** Reason for which an agent's link closed, for people. */
export function closingWords(code: number): string {
  return closings[code] ?? `the server closed it (code ${code})`
}

/** Reason sent with 1001 by an agent that is being stopped, not by one that closes an idle on-demand link. */
export const stoppedReason = 'the agent was stopped'
