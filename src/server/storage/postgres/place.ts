import { RsmError } from '../../../core/errors.ts'
import { readStoreAddress, type StoreAddress } from './connection/address.ts'

/** Address of a shared store, and the name of this server there. */
export interface Place {
  readonly address: StoreAddress
  readonly serverName: string
}

const nameHint = 'a name of up to 63 letters, digits, dots, dashes and underscores, such as rsm1'

interface Given {
  readonly store?: string | undefined
  readonly storePasswordFile?: string | undefined
  readonly insecureStore?: boolean | undefined
  readonly serverName?: string | undefined
  readonly keysDir?: string | undefined
}

/** Null if the store is in the data directory. Errors: `usage` for missing or contradictory options. */
export function placeOf(given: Given): Place | null {
  const { store, storePasswordFile, insecureStore, serverName, keysDir } = given
  if (store === undefined) {
    const alone = storePasswordFile === undefined ? '--server-name' : '--store-password-file'
    if (storePasswordFile === undefined && serverName === undefined) return null
    throw new RsmError('usage', `${alone} goes with --store`, {
      hint: 'add --store postgres://USER@HOST/DATABASE, or leave it out to use the data directory only',
    })
  }
  const address = readStoreAddress(store, storePasswordFile, insecureStore)
  if (serverName === undefined)
    throw new RsmError('usage', '--store needs --server-name: each server of a store has its own', {
      hint: nameHint,
    })
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(serverName))
    throw new RsmError('usage', `invalid --server-name: ${serverName || 'empty name'}`, { hint: nameHint })
  if (keysDir === undefined)
    throw new RsmError('usage', '--store needs --keys: all servers of a store have the same keys', {
      hint: 'use a directory with the same signing.key and seal.key on each server; the first server creates them',
    })
  return { address, serverName }
}
