/** The numeric id of the path, which the guard has found to exist. */
export function idOf(request: { params: unknown }): number {
  return Number((request.params as { id: string }).id)
}

export function taskIdOf(request: { params: unknown }): string {
  return (request.params as { taskId: string }).taskId
}

export function sessionIdOf(request: { params: unknown }): string {
  return (request.params as { sessionId: string }).sessionId
}
