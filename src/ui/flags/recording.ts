/** A recorded session, as `findSessionId` takes it. */
export const recordingDescription =
  'id of the session, 6 or more of its first or last characters, or latest: your newest one'
