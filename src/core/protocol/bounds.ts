/** Times and sizes that both ends of the wire go by; times in milliseconds. */

/** Each end of a WebSocket pings so often, and an event stream without news gets a comment (contract §5, §6). */
export const pingInterval = 15_000
/** Without a frame or pong for this long the other end of a WebSocket counts as dead. */
export const deadAfter = 30_000
/** Without a byte for this long an answer or event stream counts as cut. */
export const longestSilence = 45_000
/** Records on a page of a list, and entries of a log that come at once, at most (contract §1). */
export const largestPage = 500
/** Longest delay between an agent's attempts to reach its server, unless Retry-After is longer (contract §6). */
export const longestBackoff = 60_000
/** `setTimeout` takes no more, and fires at once. */
export const longestTimer = 2 ** 31 - 1

/** A larger frame closes the link with 1009. */
export const maxFrameBytes = 1024 * 1024
/** Characters of a sentence for people; a message with a longer one is malformed. */
export const longestSentence = 4096
/** Characters of a heartbeat's sentence about the agent or its link. */
export const longestReason = 256
/** The most columns or rows of a terminal. */
export const largestScreen = 1000
