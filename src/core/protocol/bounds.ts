/** Times and sizes that both ends of the wire use; times in milliseconds. */

/** Interval of pings on a WebSocket, and of comments on an idle event stream (contract §5, §6). */
export const pingInterval = 15_000
/** After this long without a frame or pong, the other end of a WebSocket counts as dead. */
export const deadAfter = 30_000
/** After this long without a byte, an answer or event stream counts as cut. */
export const longestSilence = 45_000
/** Most records on a page of a list, and most entries of a log in one answer (contract §1). */
export const largestPage = 500
/** Longest delay between an agent's attempts to reach its server, unless Retry-After is longer (contract §6). */
export const longestBackoff = 60_000
/** Longest delay of `setTimeout`; a longer one fires at once. */
export const longestTimer = 2 ** 31 - 1

/** A larger frame closes the link with 1009. */
export const maxFrameBytes = 1024 * 1024
/** Characters of a sentence for people; a longer one makes the message malformed. */
export const longestSentence = 4096
/** Characters of a heartbeat's reason or link fault. */
export const longestReason = 256
/** Most columns or rows of a terminal. */
export const largestScreen = 1000
