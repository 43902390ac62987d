import test from 'ava'
import { usersContract } from '../../contracts/users.ts'
import { servicesOnStore } from '../../helpers/services.ts'

usersContract(test, 'on the store,', servicesOnStore)
