import anyTest, { type TestFn } from 'ava'
import { programs } from './postgres-instances.ts'

export * from './postgres-instances.ts'

/** Skipped where PostgreSQL 15 or newer is missing (Debian: `postgresql`). */
export const postgresTest: TestFn =
  programs === null
    ? (Object.assign(anyTest.skip, { serial: anyTest.serial.skip }) as unknown as TestFn)
    : anyTest
