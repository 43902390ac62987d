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

/** A machine whose time passes as the test says; its wall clock may be set. */
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
  /** Runs, and is looked at every ten minutes. */
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
  /** The program ends and starts again on the same boot, after so long. */
  restart(away = 0): this {
    this.wall += away
    this.up += away
    return this.look(false)
  }
  /** The machine is off for so long, and then shows a clock that is `by` ahead. */
  reboot(off: number, by = 0): this {
    this.boot++
    this.wall += off + minute + by
    this.up = minute
    return this.look(false)
  }
  age = (stamp: number) => ageOf(this.time, stamp)
}

test('A03 with a clock that goes on as it should, what is stamped is as old as the clock says', (t) => {
  const machine = new Machine()
  t.is(machine.age(start), 0)
  t.is(machine.run(40 * day).age(start), 40 * day)
  t.is(machine.restart(3 * day).age(start), 43 * day, 'boot time has passed as well')
  t.is(machine.reboot(20 * minute).age(start), 43 * day + 21 * minute)
  t.false(isDoubted(machine.time))
})

for (const [how, jump] of [
  ['in flight', (machine: Machine) => machine.set(40 * day)],
  [
    'while the program was away',
    (machine: Machine) => (machine.set(0), (machine.wall += 40 * day), machine.restart()),
  ],
  ['over a boot', (machine: Machine) => machine.reboot(0, 40 * day)],
] as const)
  test(`A03 a jump of 40 days ${how} makes nothing older than by the time that it runs, until it has run for a day`, (t) => {
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

test('A03 the day is added up over restarts, and one jump does not make use of what the one before has run', (t) => {
  const machine = new Machine().set(40 * day)
  for (let times = 0; times < 8; times++) machine.run(3 * hour - minute).restart()
  t.is(agreesIn(machine.time), 8 * minute)
  machine.reboot(0, 10 * day).run(8 * minute)
  t.true(isDoubted(machine.time))
  t.is(Math.round(ahead(machine.time) / day), 10)
  t.is(Math.round(machine.age(start) / day), 41)
})

test('A03 a machine that is off every night agrees all the same', (t) => {
  const machine = new Machine()
  for (let days = 0; days < 30; days++) machine.run(8 * hour).reboot(16 * hour)
  t.true(
    machine.age(start) >= 27 * day && machine.age(start) <= 30 * day + hour,
    String(machine.age(start) / day),
  )
})

test('A03 a clock that is set again and again is not believed until it has been left alone for a day', (t) => {
  const machine = new Machine().set(40 * day)
  for (let times = 0; times < 10; times++)
    machine.run(20 * hour).set(times % 2 === 0 ? 2 * minute : -2 * minute)
  t.true(isDoubted(machine.time))
  t.true(machine.age(start) <= 10 * 20 * hour + hour)
  t.false(isDoubted(machine.run(day).time))
})

test('A03 small steps are believed one by one, and together only as far as an hour', (t) => {
  const machine = new Machine()
  for (let times = 0; times < 10; times++) machine.set(10 * minute)
  t.true(isDoubted(machine.time))
  t.is(machine.age(start), 0)
})

test('A03 a clock that is put right again is believed at once', (t) => {
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

test('A03 what was made while the clock was behind is not old when it is right again', (t) => {
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

test('A03 a clock that has run behind for a day is the right one', (t) => {
  const machine = new Machine().set(-40 * day).run(day)
  t.false(isDoubted(machine.time))
  const made = machine.wall
  t.is(machine.run(2 * day).age(made), 2 * day)
  t.true(isDoubted(machine.set(40 * day).time))
  t.is(machine.age(made), 2 * day)
})

test('A03 whoever confirms the clock makes it believed at once', (t) => {
  const machine = new Machine().set(40 * day)
  machine.time = confirmed(machine.time)
  t.false(isDoubted(machine.time))
  t.is(machine.age(start), 40 * day)
  t.is(machine.run(hour).age(start), 40 * day + hour)
})

test('A03 the data of an older version tells how far its clock had come', (t) => {
  const machine = new Machine()
  machine.time = firstTime(machine.reading(), start - 40 * day)
  t.true(isDoubted(machine.time))
  t.is(machine.age(start - 40 * day), 0)
  t.is(machine.run(day).age(start - 40 * day), 41 * day)
  t.false(isDoubted(firstTime(machine.reading(), machine.wall - 30 * minute)))
})

test('A03 what is kept of steps and periods is bounded, and loses no caution', (t) => {
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
