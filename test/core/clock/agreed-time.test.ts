import test from 'ava'
import {
  type AgreedTime,
  ageOf,
  agreedAfter,
  agreesIn,
  ahead,
  confirmed,
  firstTime,
  isDoubted,
  observe,
} from '../../../src/core/clock/agreed-time.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const start = Date.parse('2026-06-01T00:00:00.000Z')

/** A machine whose time the test advances, and whose wall clock it may set. */
class Machine {
  wall = start
  up = day
  boot = 1
  time: AgreedTime = firstTime(this.reading(), null)

  reading() {
    return { wall: this.wall, up: this.up, bootId: String(this.boot) }
  }
  look(wasRunning = true): this {
    this.time = observe(this.time, this.reading(), wasRunning)
    return this
  }
  /** Runs for this time, and observes the clock every ten minutes. */
  run(milliseconds: number): this {
    for (let left = milliseconds; left > 0; left -= 10 * minute) {
      const step = Math.min(left, 10 * minute)
      this.wall += step
      this.up += step
      this.look()
    }
    return this
  }
  set(by: number): this {
    this.wall += by
    return this.look()
  }
  /** Restarts the program after `away`, during the same boot. */
  restart(away = 0): this {
    this.wall += away
    this.up += away
    return this.look(false)
  }
  /** Turns the machine off for `off`; afterwards its clock is ahead by `by`. */
  reboot(off: number, by = 0): this {
    this.boot++
    this.wall += off + minute + by
    this.up = minute
    return this.look(false)
  }
  age = (stamp: number) => ageOf(this.time, stamp)
}

test('A03 the age of a timestamp is that of the clock while the clock runs steadily', (t) => {
  const machine = new Machine()
  t.is(machine.age(start), 0)
  t.is(machine.run(40 * day).age(start), 40 * day)
  t.is(machine.restart(3 * day).age(start), 43 * day, 'time since boot has passed too')
  t.is(machine.reboot(20 * minute).age(start), 43 * day + 21 * minute)
  t.false(isDoubted(machine.time))
})

for (const [how, jump] of [
  ['at run time', (machine: Machine) => machine.set(40 * day)],
  [
    'while the program is not running',
    (machine: Machine) => (machine.set(0), (machine.wall += 40 * day), machine.restart()),
  ],
  ['across a boot', (machine: Machine) => machine.reboot(0, 40 * day)],
] as const)
  test(`A03 after a jump of 40 days ${how}, ages grow only with running time until a day has passed`, (t) => {
    const machine = jump(new Machine().run(hour))
    const before = machine.age(start)
    t.true(before <= hour + 2 * minute, String(before))
    t.true(isDoubted(machine.time))
    t.is(Math.round(ahead(machine.time) / day), 40)
    machine.run(day - hour)
    t.is(machine.age(start) - before, day - hour)
    t.is(agreesIn(machine.time), hour)
    machine.run(hour)
    t.false(isDoubted(machine.time))
    t.is(Math.round(machine.age(start) / day), 41)
  })

test('A03 the day is counted across restarts, and each jump needs a day of its own', (t) => {
  const machine = new Machine().set(40 * day)
  for (let times = 0; times < 8; times++) machine.run(3 * hour - minute).restart()
  t.is(agreesIn(machine.time), 8 * minute)
  machine.reboot(0, 10 * day).run(8 * minute)
  t.true(isDoubted(machine.time))
  t.is(Math.round(ahead(machine.time) / day), 10)
  t.is(Math.round(machine.age(start) / day), 41)
})

test('A03 a machine that is off every night reaches agreement too', (t) => {
  const machine = new Machine()
  for (let days = 0; days < 30; days++) machine.run(8 * hour).reboot(16 * hour)
  t.true(
    machine.age(start) >= 27 * day && machine.age(start) <= 30 * day + hour,
    String(machine.age(start) / day),
  )
})

test('A03 a clock that is set repeatedly is trusted only after a day without a change', (t) => {
  const machine = new Machine().set(40 * day)
  for (let times = 0; times < 10; times++)
    machine.run(20 * hour).set(times % 2 === 0 ? 2 * minute : -2 * minute)
  t.true(isDoubted(machine.time))
  t.true(machine.age(start) <= 10 * 20 * hour + hour)
  t.false(isDoubted(machine.run(day).time))
})

test('A03 small steps are trusted singly, but together only up to an hour', (t) => {
  const machine = new Machine()
  for (let times = 0; times < 10; times++) machine.set(10 * minute)
  t.true(isDoubted(machine.time))
  t.is(machine.age(start), 0)
})

test('A03 a corrected clock is trusted at once', (t) => {
  for (const by of [40 * day, -40 * day]) {
    const machine = new Machine()
      .run(hour)
      .set(by)
      .run(2 * hour)
      .set(-by)
    t.false(isDoubted(machine.time))
    t.is(machine.age(start), 3 * hour)
    t.is(machine.time.steps.length, 0)
  }
})

test('A03 data written while the clock was behind is not old after the correction', (t) => {
  for (const [first, last] of [
    [0, 0],
    [-40 * day, 0],
  ] as const) {
    const machine = new Machine().run(hour)
    if (first === 0) machine.set(-40 * day)
    else {
      machine.wall += first
      machine.restart()
    }
    machine.run(5 * minute)
    const made = machine.wall
    machine.run(5 * minute)
    t.true(machine.age(made) <= 10 * minute)
    t.true(isDoubted(machine.time))
    machine.set(40 * day + last)
    t.true(machine.age(made) <= 20 * minute, String(machine.age(made) / day))
    t.true(machine.run(3 * day).age(made) <= 3 * day + 20 * minute)
  }
})

test('A03 a clock that has been behind for a day is trusted', (t) => {
  const machine = new Machine().set(-40 * day).run(day)
  t.false(isDoubted(machine.time))
  const made = machine.wall
  t.is(machine.run(2 * day).age(made), 2 * day)
  t.true(isDoubted(machine.set(40 * day).time))
  t.is(machine.age(made), 2 * day)
})

test('A03 a confirmed clock is trusted at once', (t) => {
  const machine = new Machine().set(40 * day)
  machine.time = confirmed(machine.time)
  t.false(isDoubted(machine.time))
  t.is(machine.age(start), 40 * day)
  t.is(machine.run(hour).age(start), 40 * day + hour)
})

test('A03 data of an older version gives the time that its clock had reached', (t) => {
  const machine = new Machine()
  machine.time = firstTime(machine.reading(), start - 40 * day)
  t.true(isDoubted(machine.time))
  t.is(machine.age(start - 40 * day), 0)
  t.is(machine.run(day).age(start - 40 * day), 41 * day)
  t.false(isDoubted(firstTime(machine.reading(), machine.wall - 30 * minute)))
})

test('A03 recorded steps and periods are bounded, and dropping some never makes data older', (t) => {
  const machine = new Machine()
  for (let times = 0; times < 100; times++) machine.reboot(0, 2 * hour).run(minute)
  t.true(machine.time.steps.length <= 16)
  t.true(machine.age(start) <= 100 * 4 * minute)
  const back = new Machine()
  const made: number[] = []
  for (let times = 0; times < 40; times++) {
    back.set(-(times + 2) * day).run(minute)
    made.push(back.wall)
    back.set((times + 2) * day).run(hour)
  }
  t.true(back.time.behind.length <= 17)
  for (const stamp of made) t.true(back.age(stamp) <= 41 * hour)
  t.is(agreedAfter, day)
})
