/** A recorded session, as `findSessionId` takes it. */
export const recordingDescription = 'session id, its first or last 6 characters, or latest'
