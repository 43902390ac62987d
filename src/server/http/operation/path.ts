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

export function fileIdOf(request: { params: unknown }): string {
  return (request.params as { fileId: string }).fileId
}

/** The numeric id of a host that stands in the path beside another id; NaN where it is none. */
export function hostIdOf(request: { params: unknown }): number {
  const { hostId } = request.params as { hostId: string }
  return /^[1-9]\d{0,15}$/.test(hostId) ? Number(hostId) : Number.NaN
}
