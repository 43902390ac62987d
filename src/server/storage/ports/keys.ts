import type { RunMark } from '../../../core/protocol/messages.ts'
import type { SignedType } from '../../../core/protocol/orders.ts'
import type { KeyRecord } from '../records/run.ts'

/** Keys shared by all servers of a store. Kept apart from it, so that a stolen store reveals nothing (S04). */
export interface Keys {
  /** Ed25519 public key, 32 bytes, base64; agents pin it when they register. */
  readonly serverKey: string
  readonly keyId: string
  /** Adds `expiry`, `keyId` and `signature` to a payload for one agent (contract §6). */
  sign<P extends object>(
    type: SignedType,
    agentId: string,
    payload: P,
    expiry: string,
  ): P & { expiry: string; keyId: string; signature: string }
  /** Adds a MAC to a mark that later proves that this server gave it to this agent (contract §11). */
  authenticated(agentId: string, mark: RunMark): RunMark
  isAuthentic(agentId: string, mark: RunMark): boolean
  /** `context` binds the sealed text to the record that holds it. */
  seal(plain: string, context: string): string
  open(sealed: string, context: string): string
  /** Keyed digest, hex; compares texts without letting a stolen store be guessed at (S04). */
  digest(plain: string): string
}

/** Keys that a start with --new-keys replaced, and data that became useless with the old ones. */
export interface ReplacedKeys {
  keys: KeyRecord['id'][]
  /** Hosts whose agents must enroll again. */
  agents: string[]
  /** Hosts whose password or private key is lost. */
  credentials: string[]
  tasks: string[]
  /** Webhooks whose secret is lost: deliveries stop until a new one is set. */
  webhooks: string[]
}

/** Text sealed with the server's key file, base64; bound to the record that holds it. */
export type Sealed = string
