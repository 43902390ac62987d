import test from 'ava'
import { ClockComparison } from '../../../src/server/storage/known-host.ts'

const at = Date.parse('2026-03-02T09:30:00.000Z')
const text = (milliseconds: number) => new Date(at + milliseconds).toISOString()

test("a single heartbeat delayed by the network does not make the host's clock count as behind", (t) => {
  const comparison = new ClockComparison()
  t.is(comparison.offsetSeconds(), null)
  comparison.note(text(2_000), at)
  t.is(comparison.offsetSeconds(), 2)
  comparison.note(text(32_000), at + 55_000)
  t.is(comparison.offsetSeconds(), 2)
})

test('a corrected clock counts as right after two heartbeats', (t) => {
  const comparison = new ClockComparison()
  comparison.note(text(-3_600_000), at)
  t.is(comparison.offsetSeconds(), -3600)
  comparison.note(text(0), at)
  t.is(comparison.offsetSeconds(), 0)
  comparison.note(text(86_400_000), at)
  comparison.note(text(10_000), at + 10_000)
  comparison.note(text(20_000), at + 20_000)
  t.is(comparison.offsetSeconds(), 0)
})

test('an invalid or missing time gives no offset', (t) => {
  const comparison = new ClockComparison()
  comparison.note(text(5_000), at)
  comparison.note('yesterday', at)
  t.is(comparison.offsetSeconds(), 5)
  comparison.note('today', at)
  t.is(comparison.offsetSeconds(), null)
  comparison.note(text(5_000), at)
  comparison.note(undefined, at)
  t.is(comparison.offsetSeconds(), null)
})
