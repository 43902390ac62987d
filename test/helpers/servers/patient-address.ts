import {
  readStoreAddress,
  type StoreAddress,
} from '../../../src/server/storage/postgres/connection/address.ts'

/** For files whose tests all connect at once on a busy machine. */
export const patientAddress = (url: string): StoreAddress => ({
  ...readStoreAddress(url, undefined),
  connectTimeout: 60_000,
})
