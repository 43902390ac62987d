/** JSON with keys sorted at every depth and undefined fields left out: one value, one text (cf. RFC 8785). */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item)).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined)
    entries.sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${entries.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`
  }
  return JSON.stringify(value)
}

/** The messages that make an agent do something on its host. */
export type SignedType = 'EXECUTE_SCRIPT' | 'COPY_FILE' | 'FETCH_FILE' | 'TERMINAL_OPEN'

/**
 * The bytes of such a message that Ed25519 signs: type, the agent it is for, and every field of
 * the payload but the signature itself (contract §6).
 */
export function signedBytes(type: SignedType, agentId: string, payload: object): Uint8Array {
  const { signature: _, ...rest } = payload as Record<string, unknown>
  return new TextEncoder().encode(canonical({ type, agentId, payload: rest }))
}

/**
 * Whether an agent says by this `error` of a SCRIPT_COMPLETE that it ran nothing for want of a valid signature: its
 * sentences about that all begin so, and servers audit it (reliability S05).
 */
export function isDistrust(error: string | null | undefined): boolean {
  return error?.startsWith('signature ') === true
}
