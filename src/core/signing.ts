/** JSON with sorted keys and without undefined fields: equal values give equal texts (cf. RFC 8785). */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item)).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined)
    entries.sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${entries.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`
  }
  return JSON.stringify(value)
}

/** Messages that make an agent act on its host. */
export type SignedType = 'EXECUTE_SCRIPT' | 'COPY_FILE' | 'FETCH_FILE' | 'TERMINAL_OPEN'

/** Bytes that Ed25519 signs: type, agent, and every field of the payload but the signature (contract §6). */
export function signedBytes(type: SignedType, agentId: string, payload: object): Uint8Array {
  const { signature: _, ...rest } = payload as Record<string, unknown>
  return new TextEncoder().encode(canonical({ type, agentId, payload: rest }))
}

/**
 * Whether an `error` of SCRIPT_COMPLETE means that the agent ran nothing because a valid signature was missing. All
 * such sentences begin alike, and servers audit them (reliability S05).
 */
export function isDistrust(error: string | null | undefined): boolean {
  return error?.startsWith('signature ') === true
}
