import type { Payloads } from './protocol/messages.ts'

export type TypedInput = 'TERMINAL_INPUT' | 'TERMINAL_RESIZE'

/** What HKDF-SHA256 is told beside the shared secret of both X25519 keys, so that a key is for this session and these two. */
export function inputKeyInfo(sessionId: string, serverKey: string, agentKey: string): string {
  return `rsm typed input 1\0${sessionId}\0${serverKey}\0${agentKey}`
}

/** The text that a MAC is of. Text of a user stands last: what is before it holds no NUL. */
export function markedText<T extends TypedInput>(type: T, payload: Payloads[T], counter: number): string {
  const what = 'data' in payload ? payload.data : `${payload.cols}x${payload.rows}`
  return `${type}\0${payload.sessionId}\0${counter}\0${what}`
}
