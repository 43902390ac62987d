export const terminalStatuses = ['OPEN', 'CLOSED'] as const
export type TerminalStatus = (typeof terminalStatuses)[number]

/** Characters of a session's command that its record shows: a list of 500 whole scripts would be 100 MB. */
export const longestCommandShown = 1024
