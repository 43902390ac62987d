import type { SignedType } from '../signing.ts'
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
