import type { CopyFile, ExecuteScript, FetchFile, UpgradeOrder } from './messages.ts'

/** Work for an agent, each an execution: the payload of its message (none has a field `kind`) plus its kind. */
export type Order =
  | (Omit<ExecuteScript, 'upgrade'> & { readonly kind: 'SCRIPT' })
  | (ExecuteScript & { readonly kind: 'UPGRADE'; readonly upgrade: UpgradeOrder })
  | (CopyFile & { readonly kind: 'COPY' })
  | (FetchFile & { readonly kind: 'FETCH' })
export type OrderKind = Order['kind']
export type ScriptOrder = Extract<Order, { kind: 'SCRIPT' }>

/** Message that carries an order; its signature covers that type. */
export const messageOf = {
  SCRIPT: 'EXECUTE_SCRIPT',
  UPGRADE: 'EXECUTE_SCRIPT',
  COPY: 'COPY_FILE',
  FETCH: 'FETCH_FILE',
} as const satisfies Record<OrderKind, SignedType>

/** The order in an EXECUTE_SCRIPT: an upgrade replaces the script. */
export function scriptOrder(payload: ExecuteScript): Order {
  const { upgrade } = payload
  return upgrade ? { ...payload, upgrade, kind: 'UPGRADE' } : { ...payload, kind: 'SCRIPT' }
}

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
