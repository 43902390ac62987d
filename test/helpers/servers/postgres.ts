import anyTest, { type TestFn } from 'ava'
import { skipped } from '../skipped.ts'
import { dropDatabases, missing, programs } from './postgres-instances.ts'

export * from './postgres-instances.ts'

/** Skips tests if PostgreSQL 15 or newer is missing. */
export const postgresTest: TestFn = programs === null ? skipped(missing) : anyTest

anyTest.after.always('databases are dropped', dropDatabases)
