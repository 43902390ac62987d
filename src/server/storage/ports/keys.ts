import type { RunMark } from '../../../core/protocol/messages.ts'
import type { SignedType } from '../../../core/signing.ts'
import type { KeyRecord } from '../records/run.ts'

/** The server's own keys, apart from the store, so that a stolen store tells nothing (S04). All servers of a store have the same. */
export interface Keys {
  /** Ed25519 public key, 32 bytes, base64: what agents pin when they register. */
  readonly serverKey: string
  readonly keyId: string
  /** Adds `expiry`, `keyId` and `signature` to a payload for one agent (contract §6). */
  sign<P extends object>(
    type: SignedType,
    agentId: string,
    payload: P,
    expiry: string,
  ): P & { expiry: string; keyId: string; signature: string }
  /** The mark with the MAC that shows later that this server gave it to this agent (contract §11). */
  authenticated(agentId: string, mark: RunMark): RunMark
  isAuthentic(agentId: string, mark: RunMark): boolean
  /** `context` binds the sealed text to the record that holds it. */
  seal(plain: string, context: string): string
  open(sealed: string, context: string): string
  /** A keyed digest, hex: tells whether a text is the same without letting a stolen store be guessed at (S04). */
  digest(plain: string): string
}

/** Which keys a start with --new-keys replaced, and what became useless with the old ones. */
export interface ReplacedKeys {
  keys: KeyRecord['id'][]
  /** Hosts whose agents have to be enrolled anew. */
  agents: string[]
  /** Hosts whose password or private key is gone. */
  credentials: string[]
  /** Tasks whose secret parameters are gone. */
  tasks: string[]
  /** Webhooks whose secret is gone: nothing is sent to them until they have another one. */
  webhooks: string[]
}

/** Text sealed with the key file of the server, base64; bound to the record that holds it. */
export type Sealed = string
