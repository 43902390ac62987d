import {
  readStoreAddress,
  type StoreAddress,
} from '../../../src/server/storage/postgres/connection/address.ts'

/** Where all tests of a file connect at once, on a machine that is busy. */
export const patientAddress = (url: string): StoreAddress => ({
  ...readStoreAddress(url, undefined),
  connectTimeout: 60_000,
})
