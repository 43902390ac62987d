import type { ExecutionContext } from 'ava'
import type { Services } from '../../src/core/services.ts'

/** Fresh services of an ADMIN on an empty store, gone when the test ends. */
export type ServicesOf = (t: ExecutionContext) => Promise<Services>
