from heron_env.core.rule import one_by_one


def test_each_addition_is_rounded_in_every_python():
    assert one_by_one([1e16, 1.0, 1.0, -1e16]) == 0.0  # 2.0 where what was rounded off is carried
    assert one_by_one([]) == 0.0
