import type { ExecutionContext } from 'ava'
import type { Services } from '../../src/core/services.ts'

/** New services of an ADMIN on an empty store, closed when the test ends. */
export type ServicesOf = (t: ExecutionContext) => Promise<Services>
