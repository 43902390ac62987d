import test from 'ava'
import { schedulesContract } from '../../contracts/schedules.ts'
import { servicesOnStore } from '../../helpers/servers/services.ts'

schedulesContract(test, 'on the store,', servicesOnStore)
